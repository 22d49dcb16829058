import type { RenderedEvent } from '../../domain/events/event.ts';
import { tellingOfType } from '../../domain/events/event-types.ts';
import { isJsonObject, type JsonObject } from '../../domain/json.ts';
import { readText } from '../../domain/transfers/transfer.ts';
import { proofSentence } from './proof-rows.ts';
import { isOperatorEvent, kindName } from './title.ts';

/** One or two sentences about what happened. Words of the upstream appear in it as they came. */
export function renderSummary(event: RenderedEvent): string {
  const { data } = event;
  const remarks = [
    data.suspended === true ? 'It waited: what leads to it had left the config for a while.' : '',
    data.skipped === true ? 'A usual step before it was not seen.' : '',
    data.afterRestore === true ? 'It may have come before: Redis went back.' : '',
    data.regression === true ? 'The status moved backward.' : '',
  ];
  return [mainSentence(event), ...remarks].filter((sentence) => sentence !== '').join(' ');
}

function mainSentence(event: RenderedEvent): string {
  const { type, data } = event;
  const says = tellingOfType(type)?.says ?? null;
  if (type === 'quote.signature_invalid') return `${says}${whyInvalid(data.record)}`;
  if (says !== null && data.proof !== undefined) return `${says} ${proofSentence(data.proof)}`;
  if (says !== null) return says;
  if (isOperatorEvent(event)) return 'This is a notice about the watching itself, for its operator.';
  const word = data.status ?? type.slice(type.indexOf('.') + 1);
  return `The status of the ${kindName(data.subject.kind)} is now “${word}”.`;
}

/** Why the signature of a quote does not hold, as the verification said it. */
function whyInvalid({ signature }: JsonObject): string {
  const reason = isJsonObject(signature) ? readText(signature.reason) : null;
  const part = isJsonObject(signature) ? readText(signature.part) : null;
  return reason === null || part === null ? '' : ` Wrong is ${part}: ${reason}.`;
}
