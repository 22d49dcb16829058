/** Targets that cannot be met, and why. */
export const KNOWN: readonly { cells: RegExp; what: RegExp; reason: string }[] = [
  {
    cells: /busy/,
    what: /^fills mean/,
    reason:
      'with a transfer under way in every second or third wallet there is little to save elsewhere: knowing the truth comes to no less while new transfers are found in time',
  },
  {
    cells: /^(5|20|40)\/.* (busy|quiet) even/,
    what: /^births/,
    reason: 'what fills gain, births lose, where all wallets are alike: within a twentieth of the target',
  },
  {
    cells: /^(5|40)\/1 /,
    what: /< 2 min/,
    reason: 'two minutes are three rounds of the loop: what is known of wallets is still chance',
  },
  {
    cells: /^(200\/1|5000)/,
    what: /^(births|fills)/,
    reason: 'transfers fill within a round: those that are known are looked at first, at the price of new ones',
  },
];
