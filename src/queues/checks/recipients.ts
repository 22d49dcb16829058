import type { Statement } from '../../domain/proof/statement.ts';
import { recipientsOf } from '../../domain/proof/statement.ts';
import type { Stated } from '../../store/checks.ts';
import type { Registry } from '../../store/registry.ts';
import type { Known } from '../../store/subjects.ts';

/** A statement with those who may rightly receive: by the user's word for its subscriptions, and by the imported quote. */
export async function withRecipients(
  stated: Stated,
  { claims, promised }: Known,
  registry: Registry,
): Promise<Statement> {
  const subscriptions = await registry.subscriptions(claims.map(({ root }) => root));
  const recipients = [...subscriptions.values()].flatMap((subscription) => subscription.recipients);
  return { ...stated, recipients: recipientsOf(stated, { recipients, promised }) };
}
