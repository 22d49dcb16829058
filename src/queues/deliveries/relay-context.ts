import type { Logger } from 'pino';
import type { Directory } from '../../domain/transfers/chains.ts';
import type { Signals } from '../../signals.ts';
import type { Stores } from '../../store/stores.ts';
import type { Sender } from './sender.ts';

/** Dependencies for opening deliveries. */
export type RelayContext = {
  stores: Stores;
  directory: Directory;
  sender: Sender;
  signals: Signals;
  log: Logger;
};
