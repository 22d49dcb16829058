import type { EndpointGroup } from '../domain/subjects/kinds.ts';
import { asSubjectId, type SubjectId } from '../domain/subjects/subject.ts';
import type { Keys } from './keys.ts';

/** Kind of the entries of transfers at their second source. */
export const OPEN_STATUS_KIND = 'open-status';

/** One entry of a plan: a subject, the next page of a sweep over the pages of a wallet, or a transfer at its second source. */
export type PlanMember = SubjectId | PageMember | OpenStatusMember;

/** `page:<route of the sweep>:<wallet>`. */
export type PageMember = `page:${string}`;

/** `open-status:<transfer>`: a transfer whose status v1 decides, polled at the open source too. */
export type OpenStatusMember = `open-status:${string}`;

const OPEN_STATUS = 'open-status:';

export function pageMember(wallet: SubjectId, route: string): PageMember {
  return `page:${route}:${wallet}`;
}

export function openStatusMember(transfer: SubjectId): OpenStatusMember {
  return `${OPEN_STATUS}${transfer}`;
}

/** True for the entry of a transfer at its second source. */
export function isOpenStatusMember(member: string): boolean {
  return member.startsWith(OPEN_STATUS);
}

/** Returns the subject of a member, and the route of the sweep where it is a page. */
export function parseMember(member: string): { subject: SubjectId; route: string | null } {
  if (isOpenStatusMember(member)) {
    return { subject: asSubjectId(member.slice(OPEN_STATUS.length)), route: null };
  }
  const match = /^page:([^:]*):(.+)$/.exec(member);
  if (match === null) return { subject: asSubjectId(member), route: null };
  return { subject: asSubjectId(match[2] ?? ''), route: match[1] ?? '' };
}

/** Endpoint group of the plan in which a member is. */
export function groupOfMember(member: string, keys: Keys): EndpointGroup {
  return isOpenStatusMember(member) ? 'open-status' : keys.groupOf(parseMember(member).subject);
}
