import { expect, inject, test } from 'vitest';
import { asSubjectId } from '../../src/domain/subjects/subject.ts';
import { connect, disconnect } from '../../src/store/connection.ts';
import { Keys } from '../../src/store/keys.ts';
import { SubjectStore } from '../../src/store/subjects.ts';
import { startBrowser, watchedPage } from '../support/browser.ts';
import { testPrefix } from '../support/daemon.ts';
import { firstEpoch } from '../support/epoch.ts';
import { Hook } from '../support/hook.ts';
import { opening } from '../support/opening.ts';
import { needs, PARTS } from '../support/optional-parts.ts';
import { reloadable } from '../support/reloadable.ts';
import { hashOf, intentRecord, ScriptedUpstream } from '../support/scripted-upstream.ts';
import { snapshotOf } from '../support/snapshot.ts';

const CHROMIUM = needs(PARTS.chromium);
const INTENT = asSubjectId(`intent:${hashOf(1)}`);

/** A daemon with 20 receivers, and a transfer with 60 events, each delivered to all of them. Returns its URL. */
async function desk({ later, started }: ReturnType<typeof opening>): Promise<string> {
  const upstream = await started(
    new ScriptedUpstream(({ query }) => ({
      records: [intentRecord(query.intentHash ?? '', 'unknown', null)],
    })),
  );
  const hook = await started(new Hook());
  const receivers = Array.from({ length: 20 }, (_, n) => `receiver-${n}`);
  const config = {
    baseUrl: upstream.url,
    redisUrl: inject('redisUrl'),
    prefix: testPrefix(),
    receivers: Object.fromEntries(receivers.map((name) => [name, { url: hook.url }])),
    subscriptions: [{ name: 'other', intents: [hashOf(9)], receivers: receivers.slice(0, 1) }],
  };
  const { daemon } = await reloadable(config, { later });
  const redis = connect({ kind: 'server', url: inject('redisUrl') });
  later(() => disconnect(redis));
  const keys = new Keys(config.prefix);
  const subjects = new SubjectStore(redis, keys, { epoch: firstEpoch(redis, keys) });
  for (let sequence = 1; sequence <= 60; sequence += 1) {
    const id = `evt_${String(sequence).padStart(40, '0')}`;
    const record = { id: INTENT, type: 'intent', status: 'pending', step: sequence };
    const {
      commit: _,
      reported: _reported,
      ...snapshot
    } = snapshotOf(Date.now())('pending', { sequence, record });
    const data = {
      subject: { kind: 'intent', id: INTENT },
      sequence,
      epoch: 1,
      status: 'pending',
      previousStatus: sequence === 1 ? null : 'pending',
      changes: ['step'],
      record,
      upstreamUpdatedAt: null,
      detectionDelaySeconds: 2,
    };
    const event = { id, type: 'intent.updated', timestamp: new Date().toISOString(), data };
    await subjects.commit({
      subject: INTENT,
      asOf: '999999999',
      token: id,
      claims: [],
      snapshot,
      event: { event, updatedAt: null, first: sequence === 1, claimKeys: [] },
    });
    const write = redis.pipeline();
    const fact = { outcome: 'delivered', entry: '1-0', claimKeys: '[]', tries: '1' };
    for (const name of receivers) write.hset(keys.delivery(name, id), fact);
    await write.exec();
  }
  return daemon.url;
}

const opened = opening();

/** Changes the address between the page's first read and its listener, as a visitor on a slow machine does. */
const CHANGED_UNSEEN = `
  const listen = window.addEventListener;
  window.addEventListener = function (type, ...rest) {
    if (type === 'hashchange') history.replaceState(null, '', '#/receivers');
    return listen.call(this, type, ...rest);
  };
`;

test.skipIf(CHROMIUM.skip)(
  `a long timeline shows its newest events with their deliveries, and the others on request${CHROMIUM.note}`,
  async () => {
    const url = await desk(opened);
    const browser = await startBrowser();
    opened.later(() => browser.close());
    const early = await browser.newPage();
    early.setDefaultTimeout(170_000);
    await early.addInitScript(CHANGED_UNSEEN);
    await early.goto(`${url}/`);
    await early.getByRole('heading', { name: 'Receivers', level: 1 }).waitFor();
    for (const width of [1280, 360]) {
      const { page, complaints } = await watchedPage(browser, url, { viewport: { width, height: 900 } });
      await page.goto(`${url}/#/subject/${encodeURIComponent(INTENT)}`);
      await page.locator('.entry').nth(49).waitFor();
      expect([await page.locator('.entry').count(), await page.locator('.delivery').count()]).toEqual([
        50, 1_000,
      ]);
      await page.getByRole('button', { name: 'Show older events' }).click();
      await page.locator('.entry').nth(59).waitFor();
      expect([await page.locator('.entry').count(), await page.locator('.delivery').count()]).toEqual([
        60, 1_200,
      ]);
      expect(await page.getByRole('button', { name: /^Show/ }).count()).toBe(0);
      expect(await page.evaluate('document.documentElement.scrollWidth > window.innerWidth')).toBe(false);
      expect(complaints).toEqual([]);
    }
  },
);
