import { inject, onTestFinished, test } from 'vitest';
import { connect } from '../../src/store/connection.ts';
import { underOutage } from '../support/checks-outage.ts';
import { ChecksStage } from '../support/checks-stage.ts';
import { RpcNodes } from '../support/rpc-nodes.ts';

test('1,000 checks that waited for endpoints that were down are judged within a small budget, each read once', async () => {
  const redis = connect({ kind: 'server', url: inject('redisUrl') });
  const stage = new ChecksStage(redis);
  const nodes = new RpcNodes();
  onTestFinished(async () => {
    await stage.close();
    await nodes.close();
    redis.disconnect();
  });
  await stage.begin();
  stage.newReader = () => nodes.reader();
  await underOutage({ stage, nodes, checks: 1_000, requestsPerSecond: 20 });
});
