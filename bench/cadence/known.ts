/** Targets that cannot be met, and why. */
export const KNOWN: readonly { cells: RegExp; what: RegExp; reason: string }[] = [];
