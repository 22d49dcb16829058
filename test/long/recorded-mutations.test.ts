import { describeRecorded } from '../support/recorded-properties.ts';

describeRecorded(5_000);
