import { describeRecorded } from '../support/recorded-properties.ts';

describeRecorded(10_000);
