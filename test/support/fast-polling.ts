const NEW = { shortestWait: '100ms', longestWait: '1s' };
const SHORT = { ...NEW, agedWait: '1s' };

/** A config's `polling` for a sandbox whose time runs twenty times as fast. */
export const FAST_POLLING = {
  watch: {
    pending: { ...SHORT, median: '2s' },
    filled: { ...SHORT, median: '10s', longestWait: '4s', agedWait: '4s' },
    gasless: { ...SHORT, median: '1s' },
    vault: { ...SHORT, median: '2s' },
  },
  newTransfers: NEW,
};
