import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { z } from 'zod';
import type { JsonValue } from '../../domain/json.ts';
import { LIMITS } from '../../domain/limits.ts';
import { codeOf } from '../../errors.ts';
import { whyEndless } from '../../files.ts';
import { Secret } from '../../secret.ts';
import type { ReceiverTls } from '../config.ts';
import { type Fault, member } from '../file/errors.ts';
import type { FilePlace } from '../file/expand.ts';
import { mapping, textField } from './fields.ts';

const fileField = textField({ pattern: /^[^\0]+$/, expected: 'a path of a file' });

export const tlsSchema = mapping({
  ca: fileField.optional().meta({
    description:
      'A file of CA certificates (PEM) that vouch for the receiver, in the place of the usual ones. Relative to the config file.',
    label: 'path',
  }),
  cert: fileField.optional().meta({
    description: 'A file with the client certificate (PEM) that is shown to the receiver, with its chain.',
    label: 'path',
  }),
  key: fileField.optional().meta({
    description: 'A file with the private key (PEM, without a passphrase) of the client certificate.',
    label: 'path',
  }),
});

/** Checks the keys of `tls` against each other and against the URL. */
export function checkTls(tls: JsonValue | undefined, { isHttps }: { isHttps: boolean }): Fault[] {
  if (tls === undefined) return [];
  const findings: Fault[] = [];
  const has = (key: string): boolean => member(tls, key) !== undefined;
  if (!isHttps)
    findings.push({
      path: ['tls'],
      found: 'TLS files for a plain http URL',
      expected: 'an https:// URL',
      atKey: true,
    });
  if (has('cert') !== has('key')) {
    const [present, absent] = has('cert') ? ['cert', 'key'] : ['key', 'cert'];
    findings.push({ path: ['tls'], found: `${present} without ${absent}`, expected: 'both', atKey: true });
  }
  return findings;
}

/** Reads the files that a `tls` mapping names; faults are returned as findings. */
export async function readTlsFiles(
  tls: z.output<typeof tlsSchema>,
  { folder, onFile }: FilePlace,
): Promise<{ files: ReceiverTls; findings: Fault[] }> {
  const findings: Fault[] = [];
  async function read<T>(key: 'ca' | 'cert' | 'key', parse: (text: string) => T): Promise<T | null> {
    const file = tls[key];
    if (file === undefined) return null;
    try {
      const path = resolve(folder, file);
      onFile?.(path);
      return parse(await readText(path));
    } catch (error) {
      const found = error instanceof UnusableFile ? error.message : 'a file that cannot be used';
      findings.push({ path: ['tls', key], found, expected: EXPECTED[key] });
      return null;
    }
  }
  const ca = await read('ca', parseCertificates);
  const cert = await read('cert', parseCertificates);
  const key = await read('key', parseKey);
  if (cert !== null && key !== null && cert.first.checkPrivateKey(key.parsed) === false) {
    findings.push({
      path: ['tls', 'key'],
      found: 'the key of another certificate',
      expected: "the certificate's own key",
    });
  }
  const identity = cert === null || key === null ? null : { cert: cert.pem, key: new Secret(key.pem) };
  return { files: { ca: ca?.pem ?? null, identity }, findings };
}

const EXPECTED = {
  ca: 'a file of CA certificates in PEM',
  cert: 'a file with a certificate in PEM',
  key: 'a file with a private key in PEM, without a passphrase',
} as const;

/** A file of unexpected content; the message describes it without quoting it. */
class UnusableFile extends Error {}

async function readText(path: string): Promise<string> {
  const endless = whyEndless(path, LIMITS.certificateFile.bytes);
  if (endless !== null) throw new UnusableFile(endless.found);
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    const code = codeOf(error);
    throw new UnusableFile(
      code === 'ENOENT' ? 'no such file' : `a file that cannot be read (${code ?? 'unknown reason'})`,
    );
  }
}

const CERTIFICATE_BEGIN = '-----BEGIN CERTIFICATE-----';
const CERTIFICATE_END = '-----END CERTIFICATE-----';

function parseCertificates(pem: string): { pem: string; first: X509Certificate } {
  const blocks = pem
    .split(CERTIFICATE_BEGIN)
    .slice(1)
    .map((block) => CERTIFICATE_BEGIN + block.split(CERTIFICATE_END, 1).join('') + CERTIFICATE_END);
  try {
    const [first] = blocks.map((block) => new X509Certificate(block));
    if (first !== undefined) return { pem, first };
  } catch {
    throw new UnusableFile('a file with a broken certificate');
  }
  throw new UnusableFile('a file without a certificate');
}

function parseKey(pem: string): { pem: string; parsed: KeyObject } {
  try {
    return { pem, parsed: createPrivateKey(pem) };
  } catch {
    throw new UnusableFile('a file without a private key that can be read');
  }
}
