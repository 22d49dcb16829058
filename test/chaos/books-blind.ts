import type { BooksReport } from '../../src/domain/books/report-schema.ts';
import { differencesOf } from './books-account.ts';
import { expectedExceptions, keyOfException } from './books-exceptions.ts';
import { type Account, livesOf } from './books-lives.ts';
import { proofWords } from './books-proofs.ts';
import type { BooksTruth } from './books-truth.ts';

/** Most alterations that one run tries: a long run tries a sample of every kind, because each try checks the whole account. */
const MOST_TRIED = 2_000;

type Alteration = { what: string; alter: (report: BooksReport) => BooksReport };

type DayAccount = Account & { truth: BooksTruth };

/** Finds omissions and alterations of correct books that the account does not notice. */
export function blindSpots(
  reports: readonly [BooksReport, BooksReport],
  truth: BooksTruth,
): { tried: number; unnoticed: string[] } {
  const { lives, dayOf } = livesOf(reports, truth);
  const all = reports.flatMap((report, index) => {
    const account = { report, day: index + 1, lives, dayOf, truth };
    const alterations = [exceptionsAltered(account), rowsAltered(account), sumsAltered(account)];
    return alterations.flatMap((some) => [...some].map((one) => ({ ...one, day: account.day })));
  });
  const every = Math.ceil(all.length / MOST_TRIED);
  const tried = all.filter((_, at) => at % every === 0);
  const [first, second] = reports;
  const unnoticed = tried.flatMap(({ what, day, alter }) => {
    const altered: readonly [BooksReport, BooksReport] =
      day === 1 ? [alter(first), second] : [first, alter(second)];
    return differencesOf(altered, truth).length === 0 ? [`${day}: ${what}`] : [];
  });
  return { tried: tried.length, unnoticed };
}

/** Omits each exception, and duplicates it. Optional exceptions are not tested. */
function* exceptionsAltered(account: DayAccount): Generator<Alteration> {
  const expected = expectedExceptions(account);
  for (const [at, exception] of account.report.exceptions.entries()) {
    const { kind, subject } = exception;
    const { least, most } = expected.get(keyOfException(exception)) ?? { least: 0, most: 0 };
    if (least !== most) continue;
    yield {
      what: `${kind} ${subject} omitted`,
      alter: (one) => ({ ...one, exceptions: one.exceptions.toSpliced(at, 1) }),
    };
    yield {
      what: `${kind} ${subject} named twice`,
      alter: (one) => ({ ...one, exceptions: [...one.exceptions, ...one.exceptions.slice(at, at + 1)] }),
    };
  }
}

function* rowsAltered({ report, day, lives, dayOf }: DayAccount): Generator<Alteration> {
  for (const [at, { subject }] of report.transfers.entries()) {
    yield {
      what: `${subject} omitted`,
      alter: (one) => ({ ...one, transfers: one.transfers.toSpliced(at, 1) }),
    };
  }
  for (const { transfer, endDay } of lives) {
    const words = proofWords(transfer, { day, dayOf, isEnded: endDay <= day });
    const proof = (['verified', 'disputed', 'not checked'] as const).find((word) => !words.has(word));
    const at = report.transfers.findIndex(({ subject }) => subject.toLowerCase() === transfer.subject);
    if (proof === undefined || at === -1) continue;
    yield {
      what: `${transfer.subject} reported as ${proof}`,
      alter: (one) => ({
        ...one,
        transfers: one.transfers.map((row, place) => (place === at ? { ...row, proof } : row)),
      }),
    };
  }
}

function* sumsAltered({ report }: DayAccount): Generator<Alteration> {
  for (const name of ['opening', 'started', 'ended', 'closing'] as const) {
    for (const at of report.balances.keys()) {
      yield {
        what: `${name} off by one unit`,
        alter: (one) => ({
          ...one,
          balances: one.balances.map((balance, place) =>
            place === at ? { ...balance, [name]: oneMore(balance[name]) } : balance,
          ),
        }),
      };
    }
  }
  for (const name of ['delivered', 'refunded'] as const) {
    for (const at of report[name].keys()) {
      yield {
        what: `${name} off by one unit`,
        alter: (one) => ({
          ...one,
          [name]: one[name].map((sum, place) => (place === at ? oneMore(sum) : sum)),
        }),
      };
    }
  }
}

function oneMore<T extends { amount: string }>(sum: T): T {
  return { ...sum, amount: String(BigInt(sum.amount) + 1n) };
}
