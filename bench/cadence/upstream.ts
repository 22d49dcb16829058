import { statusAt, type Transfer } from './workload.ts';

const PAGE = 50;

/** The upstream under a virtual clock: its pages at a time, newest first. */
export class SimulatedUpstream {
  readonly #byWallet: Transfer[][];

  constructor(transfers: readonly Transfer[], wallets: number) {
    this.#byWallet = Array.from({ length: wallets }, () => []);
    for (const transfer of transfers) this.#byWallet[transfer.wallet]?.push(transfer);
  }

  /** A page of a wallet, or of one status; `before`: birth of the last transfer on the page before. Seconds. */
  page(
    wallet: number,
    { status, at, before }: { status: string | null; at: number; before: number },
  ): { shown: { transfer: Transfer; status: string }[]; isLast: boolean } {
    const all = this.#byWallet[wallet] ?? [];
    let end = all.length;
    for (let low = 0; low < end; ) {
      const middle = (low + end) >> 1;
      if ((all[middle]?.bornAt ?? 0) <= at) low = middle + 1;
      else end = middle;
    }
    const page: { transfer: Transfer; status: string }[] = [];
    for (let index = end - 1; index >= 0 && page.length <= PAGE; index--) {
      const transfer = all[index];
      if (transfer === undefined || transfer.bornAt >= before) continue;
      const now = statusAt(transfer, at);
      if (status === null || status === now) page.push({ transfer, status: now });
    }
    return { shown: page.slice(0, PAGE), isLast: page.length <= PAGE };
  }
}
