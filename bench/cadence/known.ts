/** Targets that cannot be met, and why. */
export const KNOWN: readonly { cells: RegExp; what: RegExp; reason: string }[] = [
  {
    cells: /busy even/,
    what: /^fills mean/,
    reason:
      'a transfer is under way in every second or third wallet: knowing the truth comes to no less, unless new transfers are found late',
  },
  {
    cells: /busy skewed/,
    what: /^fills/,
    reason:
      'no wallet waits longer than three rounds; without that bound fills come to half, and the rarest ones late',
  },
  {
    cells: /^(5|20|40|200)\/(1|5|10|50) (busy|quiet) even/,
    what: /^births/,
    reason: 'where all wallets are alike, what fills gain births lose: within a tenth of the target',
  },
  {
    cells: /^(40\/50|200|5000)\/?.* skewed/,
    what: /< 2 min/,
    reason: 'the busiest wallets hold more than a page at the start, which the loop is taken to see whole',
  },
  {
    cells: /^(200\/1|5000)/,
    what: /^(births|fills)/,
    reason:
      'transfers fill within a round: those that are known are looked at first, at the price of new ones',
  },
];
