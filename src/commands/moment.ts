import { InvalidArgumentError } from 'commander';
import { MOMENT_EXPECTED, type Moment, parseMoment } from '../operations/moment.ts';

/** Reads a moment from the command line. */
export function moment(text: string): Moment {
  const read = parseMoment(text);
  if (read === null) throw new InvalidArgumentError(`expected ${MOMENT_EXPECTED}`);
  return read;
}
