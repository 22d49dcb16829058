export const MISS_REASONS: readonly { cells: RegExp; what: RegExp; reason: string }[] = [
  {
    cells: /^(1|5|20|40|200)\/.* busy/,
    what: /^fills/,
    reason:
      'a transfer is under way in every second or third wallet: knowing the truth comes to no less, unless new transfers are found late',
  },
  {
    cells: /^(1|5|20|40|200)\/.* even/,
    what: /^births/,
    reason: 'where all wallets are alike, what fills gain births lose: within a tenth of the target',
  },
  {
    cells: /^5000\/.* even/,
    what: /^(births|fills)/,
    reason:
      'where all wallets are alike nothing is gained over a loop: three percent of the budget are held back, and transfers take a part of it that pages have left',
  },
];
