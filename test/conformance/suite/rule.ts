import type { Breakage } from './breakage.ts';
import type { Material } from './material.ts';
import type { Tally } from './tally.ts';

/** The checked service: addresses without a trailing slash, and the known facts about it. */
export type Target = { baseUrl: string; apiKey: string; material: Material; tally?: Tally };

/**
 * State of a service that a rule needs: `open`: quotes stay open for a while; `finished`: the objects of the material have ended;
 * else it answers everything with a code of the table.
 */
export type Stage = 'open' | 'finished' | { failing: string; retryAfterSeconds?: number };

/** The parts of the material that a rule may need. */
export type Need = Exclude<keyof Material, 'route'>;

/** One rule of the interface. `check` uses HTTP only, and throws an AssertionError that describes the difference. */
export type Rule = {
  /** Its place in the interface; a letter distinguishes several rules of one place. */
  id: string;
  title: string;
  section: string;
  /** Default `open`. */
  stage?: Stage;
  needs?: readonly Need[];
  check: (target: Target) => Promise<void>;
  /** Modification of requests and answers that breaks the rule: then `check` must fail. */
  breakage: Breakage;
};

/** A place of the interface that HTTP cannot show, with the reason. */
export type Unobservable = { id: string; section: string; reason: string };

/** Name of the test of a rule. */
export function nameOf({ id, title }: Pick<Rule, 'id' | 'title'>): string {
  return `${id}: ${title}`;
}

/** Gives the rules of one section of the interface its name, and their common members. */
export function inSection(
  section: string,
  rules: readonly Omit<Rule, 'section'>[],
  common: Pick<Rule, 'stage' | 'needs'> = {},
): Rule[] {
  return rules.map((rule) => ({ ...common, ...rule, section }));
}

/** A part of the material. Throws when it is missing: a rule must name it among its needs. */
export function given<K extends Need>(target: Target, need: K): NonNullable<Material[K]> {
  const part = target.material[need];
  if (part === undefined || part === null) throw new Error(`the rule needs ${need}, and does not state it`);
  return part;
}
