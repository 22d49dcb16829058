/** The most series that a receiver of the config costs. */
export const MOST_PER_RECEIVER = 65;

/** The most series that a pair of chains costs, with one token. */
export const MOST_PER_ROUTE = 170;
