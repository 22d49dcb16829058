/** The observations of a page's poll, stored with the end of the poll. */
export type PageFacts = {
  facts: { readonly [field: string]: number | string };
  open: { readonly [subject: string]: string };
  ended: readonly string[];
  /**
   * Subjects of the page; those that need no own poll for `coverMs`, nor then for their virtual wait, and `latestMs` at most.
   */
  shown: readonly string[];
  covered: readonly {
    subject: string;
    alarmMs: number | null;
    virtualSeconds: number;
    latestMs: number;
  }[];
  coverMs: number;
};

export const NOTHING_OBSERVED: PageFacts = {
  facts: {},
  open: {},
  ended: [],
  shown: [],
  covered: [],
  coverMs: 0,
};

/** Observations in the shape of the script that ends a poll. */
export function flatObserved(observed: PageFacts): object {
  return {
    facts: flat(observed.facts),
    open: flat(observed.open),
    ended: observed.ended,
    shown: observed.shown,
    covered: observed.covered.flatMap(({ subject, alarmMs, virtualSeconds, latestMs }) => [
      subject,
      alarmMs === null ? '' : String(alarmMs),
      virtualSeconds,
      latestMs,
    ]),
    coverMs: observed.coverMs,
  };
}

function flat(fields: { readonly [field: string]: number | string }): string[] {
  return Object.entries(fields).flatMap(([field, value]) => [field, String(value)]);
}
