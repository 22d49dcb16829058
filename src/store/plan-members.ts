import { type EndpointGroup, endpointGroupOf } from '../domain/subjects/kinds.ts';
import { asSubjectId, type SubjectId } from '../domain/subjects/subject.ts';

/** One entry of a plan: a subject, or the next page of a sweep over the pages of a wallet. */
export type PlanMember = SubjectId | PageMember;

/** `page:<route of the sweep>:<wallet>`. */
export type PageMember = `page:${string}`;

export function pageMember(wallet: SubjectId, route: string): PageMember {
  return `page:${route}:${wallet}`;
}

/** Returns the subject of a member, and the route of the sweep where it is a page. */
export function parseMember(member: string): { subject: SubjectId; route: string | null } {
  const match = /^page:([^:]*):(.+)$/.exec(member);
  if (match === null) return { subject: asSubjectId(member), route: null };
  return { subject: asSubjectId(match[2] ?? ''), route: match[1] ?? '' };
}

/** Groups members by the endpoint group of their plan. */
export function byEndpointGroup(members: readonly PlanMember[]): Map<EndpointGroup, PlanMember[]> {
  return Map.groupBy(members, (member) => endpointGroupOf(parseMember(member).subject));
}
