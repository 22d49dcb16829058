import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { RedisClient } from '../../src/store/commands.ts';
import { Epoch } from '../../src/store/epoch.ts';
import type { Keys } from '../../src/store/keys.ts';
import { SeenFile } from '../../src/store/seen-file.ts';

/** The first epoch of data that a test writes; nothing is compared with Redis before `check`. */
export function firstEpoch(redis: RedisClient, keys: Keys): Epoch {
  return new Epoch({
    redis,
    keys,
    file: new SeenFile(join(tmpdir(), 'intentwatch-no-such-folder'), 'none'),
    onRestored: () => undefined,
    onChecked: () => undefined,
    onFile: () => undefined,
  });
}
