import { randomBytes } from 'node:crypto';
import { Command, Option } from 'commander';
import { formatHmacSecret, formatKeyPair } from '../config/fields/signing-secret.ts';

const KEY_BYTES = 32;

/** The variable by which the config has the secret. */
const VARIABLE = 'WEBHOOK_SECRET';

const CONFIG_LINE = `# In the config: secrets: ["\${${VARIABLE}}"]`;

/** `keygen`: makes a secret for a webhook receiver and says where it goes. */
export function keygenCommand(): Command {
  return new Command('keygen')
    .description('Make a signing secret for a webhook receiver.')
    .addOption(
      new Option('--type <type>', 'hmac: one secret for both sides; ed25519: the receiver gets a public key')
        .choices(['hmac', 'ed25519'])
        .default('hmac'),
    )
    .action((options: { type: 'hmac' | 'ed25519' }) => {
      process.stdout.write(`${keygen(options.type).join('\n')}\n`);
    });
}

function keygen(type: 'hmac' | 'ed25519'): string[] {
  const bytes = randomBytes(KEY_BYTES);
  switch (type) {
    case 'hmac':
      return [
        '# For the environment of the daemon, and for whoever verifies its webhooks.',
        CONFIG_LINE,
        `${VARIABLE}=${formatHmacSecret(bytes)}`,
      ];
    case 'ed25519': {
      const { secret, publicKey } = formatKeyPair(bytes);
      return [
        '# For the environment of the daemon. Keep it to yourself.',
        CONFIG_LINE,
        `${VARIABLE}=${secret}`,
        '# For whoever verifies its webhooks:',
        publicKey,
      ];
    }
    default:
      return type satisfies never;
  }
}
