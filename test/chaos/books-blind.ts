import type { Report } from '../../src/domain/books/report-schema.ts';
import { differencesOf } from './books-account.ts';
import { expectedExceptions, keyOfException } from './books-exceptions.ts';
import { livesOf } from './books-lives.ts';
import type { BooksTruth } from './books-truth.ts';

/** What is left out or altered of right books without being noticed: the account would be blind to it. */
export function blindSpots(
  reports: readonly [Report, Report],
  truth: BooksTruth,
): { tried: number; unnoticed: string[] } {
  const unnoticed: string[] = [];
  let tried = 0;
  const attempt = (what: string, day: number, alter: (report: Report) => Report): void => {
    tried += 1;
    const [first, second] = reports;
    const altered: readonly [Report, Report] = day === 1 ? [alter(first), second] : [first, alter(second)];
    if (differencesOf(altered, truth).length === 0) unnoticed.push(`${day}: ${what}`);
  };
  const { lives, dayOf } = livesOf(reports, truth);
  for (const [index, report] of reports.entries()) {
    const day = index + 1;
    const expected = expectedExceptions({ report, day, lives, dayOf, truth });
    for (const [at, exception] of report.exceptions.entries()) {
      const { kind, subject } = exception;
      const { least, most } = expected.get(keyOfException(exception)) ?? { least: 0, most: 0 };
      // What may be named and need not is no test.
      if (least !== most) continue;
      attempt(`${kind} ${subject} left out`, day, (one) => ({
        ...one,
        exceptions: one.exceptions.toSpliced(at, 1),
      }));
      attempt(`${kind} ${subject} named twice`, day, (one) => ({
        ...one,
        exceptions: [...one.exceptions, ...one.exceptions.slice(at, at + 1)],
      }));
    }
    for (const [at, { subject }] of report.transfers.entries()) {
      attempt(`${subject} left out`, day, (one) => ({ ...one, transfers: one.transfers.toSpliced(at, 1) }));
    }
    for (const name of ['opening', 'started', 'ended', 'closing'] as const) {
      for (const at of report.balances.keys()) {
        attempt(`${name} off by one unit`, day, (one) => ({
          ...one,
          balances: one.balances.map((balance, place) =>
            place === at
              ? { ...balance, [name]: { ...balance[name], amount: plusOne(balance[name].amount) } }
              : balance,
          ),
        }));
      }
    }
    for (const name of ['delivered', 'refunded'] as const) {
      for (const at of report[name].keys()) {
        attempt(`${name} off by one unit`, day, (one) => ({
          ...one,
          [name]: one[name].map((sum, place) =>
            place === at ? { ...sum, amount: plusOne(sum.amount) } : sum,
          ),
        }));
      }
    }
  }
  return { tried, unnoticed };
}

function plusOne(amount: string): string {
  return String(BigInt(amount) + 1n);
}
