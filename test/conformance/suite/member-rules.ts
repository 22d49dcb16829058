import type { z } from 'zod';
import { member, type On } from './breakage.ts';
import { conforms, holds, read } from './expectation.ts';
import type { Rule, Target } from './rule.ts';

type Row = {
  /** The member; `execution.transaction` is nested. */
  name: string;
  title: string;
  schema: z.ZodType;
  /** True for a member of every record. */
  required?: true;
  /** Values that must each be shown at least once, such as every value of a list. */
  shows?: readonly unknown[];
  /** Value of the member when the rule is broken; by default removed, or meaningless where it is optional. */
  broken?: unknown;
};

const NO_MEANING = { of: 'no meaning' };

/** Makes a rule of every row of a table of members. `place`: the place of the records in the answers that match `on`. */
export function memberRules({
  prefix,
  records,
  on,
  place,
  rows,
}: {
  prefix: string;
  records: (target: Target) => Promise<unknown[]>;
  on: On;
  place: string;
  rows: readonly Row[];
}): Omit<Rule, 'section'>[] {
  return rows.map(({ name, title, schema, required, shows = [], ...row }) => {
    const outer = name.split('.');
    const last = outer.pop() ?? name;
    const innerPlace = [place, ...outer].filter((part) => part !== '').join('.');
    const broken = 'broken' in row ? row.broken : required ? undefined : NO_MEANING;
    return {
      id: `${prefix}: ${name}`,
      title,
      check: async (target) => {
        const found = await records(target);
        holds(found.length > 0, 'found no record to check');
        const shown: unknown[] = [];
        for (const record of found) {
          const value = read(record, name);
          if (value === undefined && !required) continue;
          holds(value !== undefined, `${name} is missing from ${JSON.stringify(record)}`);
          conforms(schema, value, name);
          shown.push(value);
        }
        // A member that no answer has shown is not known to be right.
        holds(shown.length > 0, `${name} was shown by none of ${found.length} records`);
        for (const wanted of shows) {
          holds(shown.includes(wanted), `${name}: ${JSON.stringify(wanted)} was never shown`);
        }
        target.tally?.shown(shown.length);
      },
      breakage: member(on, innerPlace, last, broken),
    };
  });
}
