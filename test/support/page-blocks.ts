/** A block of code on a page, as its reader sees it. */
export type PageBlock = {
  /** The line of its fence, from 1. */
  line: number;
  language: string;
  code: string;
  /** The reason why it is not run, or not compared, from the comment before it; null where it is. */
  exception: { isSyntaxOnly: boolean; reason: string } | null;
};

const FENCE = /^( *)(`{3,})(\w*)$/;
const EXCEPTION = /^<!-- (syntax only|not printed here): (.+) -->$/;

/** The blocks of a page in their order. */
export function pageBlocks(markdown: string): PageBlock[] {
  const lines = markdown.split('\n');
  const blocks: PageBlock[] = [];
  for (let at = 0; at < lines.length; at += 1) {
    const [, indent = '', fence = '', language = ''] = FENCE.exec(lines[at] ?? '') ?? [];
    if (fence === '') continue;
    const end = lines.indexOf(`${indent}${fence}`, at + 1);
    const code = lines.slice(at + 1, end).map((line) => line.slice(indent.length));
    const [, kind = '', reason = ''] = EXCEPTION.exec(lines[at - 1] ?? '') ?? [];
    const exception = kind === '' ? null : { isSyntaxOnly: kind === 'syntax only', reason };
    blocks.push({ line: at + 1, language, code: code.join('\n'), exception });
    at = end;
  }
  return blocks;
}

/** True for commands that a reader types: `console` shows their output as well. */
export function isTyped({ language }: PageBlock): boolean {
  return language === 'sh' || language === 'console';
}

/** The variables that a reader fills in, where a block has nothing else; else none. */
export function filledIn({ code }: PageBlock): string[] {
  const lines = code.split('\n');
  const pattern = /^export((?: \w+=[^\s#"]*…[^\s#"]*)+)(?: +#.*)?$/;
  if (!lines.every((line) => pattern.test(line))) return [];
  return lines.flatMap((line) => [...line.matchAll(/ (\w+)=/g)].map(([, name = '']) => name));
}

/** The commands of a `console` block, and their printed lines. */
export function consoleOf(code: string): { commands: string[]; printed: string[] } {
  const lines = code.split('\n');
  return {
    commands: lines.filter((line) => line.startsWith('$ ')).map((line) => line.slice(2)),
    printed: lines.filter((line) => !line.startsWith('$ ')),
  };
}

/**
 * The shape of a printed line: a pattern that fits the same line with other values. The varying places are times, hashes
 * and ids, numbers, types of events, symbols of tokens, names of chains, and the text that `…` replaces.
 */
function shapeOf(line: string): RegExp {
  const escaped = placesOf(line).replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');
  return new RegExp(`^${escaped.replaceAll('…', '.*')}$`);
}

/** Names the varying places of a line. */
function placesOf(line: string): string {
  return line
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z|\b\d\d:\d\d:\d\d\b/g, '<time>')
    .replaceAll(/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]+/g, '<id>')
    .replaceAll(/\b(?:0x|evt_|whsec_|whpk_|whsk_)[\w+/=]*(?:…[\w]*)?/g, '<id>')
    .replaceAll(/\b[0-9a-f]{16,}\b/g, '<id>')
    .replaceAll(/\d[\d,.]*/g, '<n>')
    .replaceAll(/\bintent\.[a-z]+/g, '<type>')
    .replaceAll(/\bUSD[CT]\b/g, '<token>')
    .replaceAll(/\b(?:Ethereum|Optimism|Base|Arbitrum(?: One)?|Solana|Tron)\b/g, '<chain>')
    .replaceAll(/\s+/g, ' ')
    .trim();
}

/** The expected lines whose shape no printed line has. A line of `…` alone matches any lines. */
export function notPrinted(expected: readonly string[], printed: readonly string[]): string[] {
  const found = printed.map(placesOf);
  return expected
    .filter((line) => line.trim() !== '' && line.trim() !== '…')
    .filter((line) => !found.some((one) => shapeOf(line).test(one)));
}
