import { writeSync } from 'node:fs';
import { registerHooks } from 'node:module';

/** Imported first into a program: prints at its end, on stderr, the packages and the files of `src` that it has loaded. */
const loaded = new Set<string>();

registerHooks({
  load: (url, context, next) => {
    const [, name] = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url) ?? /\/(src\/.+)$/.exec(url) ?? [];
    if (name !== undefined) loaded.add(name);
    return next(url, context);
  },
});

process.on('exit', () => void writeSync(2, `loaded ${JSON.stringify([...loaded])}\n`));
