import type { Breakage } from './breakage.ts';
import type { Material } from './material.ts';
import type { Tally } from './tally.ts';

/** The service that is checked: addresses without a trailing slash, and what is known of it. */
export type Target = { baseUrl: string; apiKey: string; material: Material; tally?: Tally };

/**
 * What a service must be like while a rule is checked: one where quotes stay open for a while, one where what the
 * material names has come to its end, or one that answers everything with a code of the table.
 */
export type Stage = 'open' | 'finished' | { failing: string; retryAfterSeconds?: number };

/** The parts of the material that a rule may need. */
export type Need = Exclude<keyof Material, 'route'>;

/** One rule of the interface. `check` speaks HTTP only, and throws an AssertionError that says what differs. */
export type Rule = {
  /** Its place in the interface; a letter tells several rules of one place apart. */
  id: string;
  title: string;
  section: string;
  /** Default `open`. */
  stage?: Stage;
  needs?: readonly Need[];
  check: (target: Target) => Promise<void>;
  /** What becomes of requests and answers when the rule is broken: then `check` must fail. */
  breakage: Breakage;
};

/** A place of the interface that cannot be seen over HTTP, and why. */
export type Unobservable = { id: string; section: string; reason: string };

/** The name of the test of a rule. */
export function nameOf({ id, title }: Pick<Rule, 'id' | 'title'>): string {
  return `${id}: ${title}`;
}

/** Gives rules that stand in one section of the interface its name, and what they have in common. */
export function inSection(
  section: string,
  rules: readonly Omit<Rule, 'section'>[],
  common: Pick<Rule, 'stage' | 'needs'> = {},
): Rule[] {
  return rules.map((rule) => ({ ...common, ...rule, section }));
}

/** A part of the material. Throws when it was not given: a rule must name it among its needs. */
export function given<K extends Need>(target: Target, need: K): NonNullable<Material[K]> {
  const part = target.material[need];
  if (part === undefined || part === null) throw new Error(`the rule needs ${need}, and does not say so`);
  return part;
}
