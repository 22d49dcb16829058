/**
 * A rule, and the line that breaks it; `also`: the line that breaks another rule, which covers for it. `acts`: the acts of a life
 * that shows it, where drawn ones seldom do. `unnoticed`: the reason why no life can show it, and the test that does.
 */
export type Damage = {
  rule: string;
  file: string;
  find: string;
  replace: string;
  also?: { file: string; find: string; replace: string };
  acts?: readonly string[];
  unnoticed?: string;
};

/** Each of these two alone has every old record of a wallet recognised: both are broken for both rules. */
const NOT_COMPACT = {
  file: 'src/store/commands/compact-ended-4.lua',
  find: "if redis.call('EXISTS', key) == 0 then return remove(prefix, subject) end",
  replace: 'do return remove(prefix, subject) end',
};
const NO_HISTORY = {
  file: 'src/domain/changes/decision.ts',
  find: 'if (readAtMs === 0 || readAtMs > confirmedMs) return [...claims];',
  replace: 'if (readAtMs >= 0 || readAtMs > confirmedMs) return [...claims];',
};

const LONG_OUTAGE = [
  'let time pass',
  'the upstream is away for a while',
  'let time pass',
  'the upstream is away for longer than the retention',
  'let time pass',
];

export const DAMAGES: readonly Damage[] = [
  {
    rule: 'subjects removed from the config are suspended',
    file: 'src/domain/subjects/suspended-keys.ts',
    find: 'if (!isCovered && (isGraced || before !== undefined)) {',
    replace: 'if (before === null) {',
  },
  {
    rule: 'events of suspended subjects wait',
    file: 'src/store/commands/include/suspended.lua',
    find: 'local some = suspensionOf(wantedKey, claimKey) and withheld or reported',
    replace: 'local some = reported',
  },
  {
    rule: 'a rename retains the earliest start',
    file: 'src/domain/subjects/suspended-keys.ts',
    find: 'return { name, atMs: atMs < oldest(staying, name) ? atMs : null };',
    replace: 'return { name, atMs: atMs < 0 ? atMs : null };',
  },
  {
    rule: 'a reload that removes much is held',
    file: 'src/daemon/config-changes.ts',
    find: 'const LEAST_LARGE_REMOVAL = 3;',
    replace: 'const LEAST_LARGE_REMOVAL = 3_000;',
  },
  {
    rule: 'a confirmation names the digest',
    file: 'src/daemon/reloads.ts',
    find: 'if (digest !== null && digest === confirm) await',
    replace: 'if (digest !== null && confirm !== undefined) await',
  },
  {
    rule: 'a wrong digest is refused',
    file: 'src/daemon/reloads.ts',
    find: 'if (request.confirm === undefined || digest === request.confirm || state.state === ',
    replace: 'if (request.confirm !== "" || state.state === ',
  },
  {
    rule: 'a Redis that went back begins an epoch',
    file: 'src/store/commands/compare-epoch-4.lua',
    find: 'local isBehind = hasLess or',
    replace: 'local isBehind = false and hasLess or',
  },
  {
    rule: 'a Redis that went back is synchronised',
    file: 'src/queues/deliveries/reconcile.ts',
    find: 'if (newest === null || behind !== null || upkeep.isPartlyApplied()) {',
    replace: 'if (newest === null || upkeep.isPartlyApplied()) {',
  },
  {
    rule: 'the seen state is stored outside Redis',
    file: 'src/store/epoch.ts',
    find: 'stored?.seen ?? NOTHING_SEEN',
    replace: 'NOTHING_SEEN',
  },
  {
    rule: 'a state that is found again has the id that it had',
    file: 'src/domain/events/event.ts',
    find: 'const hash = eventId([subject, type, foldedJson(record), flag, payment]);',
    replace: 'const hash = eventId([subject, type, foldedJson(record), flag, payment, String(Date.now())]);',
  },
  {
    rule: 'dropped events are named',
    file: 'src/store/waiting-events.ts',
    find: 'eventIds: ids.slice(0, MOST_NAMED),',
    replace: 'eventIds: [],',
  },
  {
    rule: 'a transaction is polled on for further transfers',
    file: 'src/domain/cadence/pages.ts',
    find: 'if (!isOpen && ageMs >= AWAITED_MS)',
    replace: 'if (ageMs >= 0)',
  },
  {
    rule: 'an address has one form',
    file: 'src/domain/subjects/subject.ts',
    find: 'return `deposit-address:${foldId(id)}` as SubjectId;',
    replace: 'return `deposit-address:${id}` as SubjectId;',
  },
  {
    rule: 'changes before the start are history',
    // The check here and that in commit-12.lua cover for each other: both use this start.
    file: 'src/store/commands/resolve-subscription-start-2.lua',
    find: "return string.format('%.0f', math.floor((at + offset) / 1000))",
    replace: "return '0'",
  },
  {
    rule: 'events for a receiver that its subscription loses wait on',
    file: 'src/store/sync-config.ts',
    find: 'if (parts.length === 0) return;',
    replace: 'if (parts.length >= 0) return;',
  },
  {
    rule: 'an ended subject is compact, and stays known, beyond the retention',
    ...NOT_COMPACT,
    also: NO_HISTORY,
    acts: LONG_OUTAGE,
  },
  {
    rule: 'a removed transfer is history when its wallet shows it after the retention',
    ...NO_HISTORY,
    also: NOT_COMPACT,
    acts: LONG_OUTAGE,
  },
  {
    rule: 'expiry goes by the confirmed time',
    file: 'src/store/commands/confirm-time-3.lua',
    find: "if before == 'steady' and jump == 0 then",
    replace: "if before == 'steady' then",
  },
  {
    rule: 'a clock that jumps again is held again',
    file: 'src/store/commands/confirm-time-3.lua',
    find: "put('heldFromMs', confirmed)\n    put('jumpMs', jump)\n    put('isReported', nil)",
    replace: "put('jumpMs', jump)",
    acts: ['let time pass', 'the clock jumps twice', 'let time pass'],
  },
  {
    rule: 'a subject that ends by its age is polled once more',
    file: 'src/queues/polls/poll-record.ts',
    find: '!isFinishedByStatus({ ...start, finished })',
    replace: '!planOf(deps, start, start).isOver',
  },
  {
    rule: 'suspended events are for the receivers that had them',
    file: 'src/domain/subjects/suspended-keys.ts',
    find: 'const gains = narrowed === null && now',
    replace: 'const gains = narrowed === "" && now',
  },
  {
    rule: 'logged events are for the claims that go on with their subject',
    file: 'src/queues/deliveries/matches.ts',
    find: 'own?.length === 0 ? leading(of.next)',
    replace: 'own?.length === -1 ? leading(of.next)',
    acts: [
      'let time pass',
      ...Array<string>(8).fill('kill -9 at work, and start with all items under new names'),
      'let time pass',
    ],
  },
  {
    rule: 'a start is believed by several responses',
    file: 'src/store/commands/resolve-subscription-start-2.lua',
    find: "tonumber(clock[2] or '')",
    replace: 'tonumber(ARGV.dateMs) and tonumber(ARGV.dateMs) - nowMs',
    acts: ['let time pass', 'a wallet begins at a response with another time', 'let time pass'],
  },
  {
    rule: 'a requested reload synchronises',
    file: 'src/daemon/daemon.ts',
    find: 'if (isNewest) await old.sync();',
    replace: '',
  },
  {
    rule: 'waiting events are released once their subscription is back',
    file: 'src/store/suspensions.ts',
    find: "if (stateOf(suspension) === 'back') settled.push(await this.#release(suspension));",
    replace: "if (stateOf(suspension) === 'back') continue;",
  },
  {
    rule: 'a cursor that died has the next sweep read back to back',
    file: 'src/queues/polls/wallet-plan.ts',
    find: "if (!isHurried(facts, nowMs)) return 'patient';",
    replace: "if (nowMs > 0) return 'patient';",
    unnoticed: 'a step has all pages read within seconds: test/long/cursor-lifetime.test.ts',
  },
  {
    rule: 'equal times are no evidence of an order',
    file: 'src/domain/cadence/wallet.ts',
    find: 'descends && new Set(times).size >= ENOUGH',
    replace: 'descends',
    unnoticed: 'new transfers are late, and not lost: test/long/wallet-orders.test.ts',
  },
];
