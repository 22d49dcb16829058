/** A block of code on a page: the language behind its fence ('' for an indented one), and its text. */
export type CodeBlock = { language: string; code: string };

const FENCED = /^ *(`{3,})(\w*)\n([\s\S]*?)^ *\1$/gm;
const INDENTED = /(?<=^|\n\n)(?: {4}.*\n(?:\n(?= {4}))?)+/g;

/** The blocks of code of a page: the fenced ones, then the indented ones. */
export function codeBlocks(markdown: string): CodeBlock[] {
  const fenced = [...markdown.matchAll(FENCED)].map(([, , language = '', code = '']) => ({ language, code }));
  const indented = [...markdown.replaceAll(FENCED, '').matchAll(INDENTED)].map(([block]) => ({
    language: '',
    code: block.replaceAll(/^ {4}/gm, ''),
  }));
  return [...fenced, ...indented];
}

function withoutBlocks(markdown: string): string {
  return markdown.replaceAll(FENCED, '').replaceAll(INDENTED, '');
}

/** The code within the sentences of a page. */
export function codeSpans(markdown: string): string[] {
  return [...withoutBlocks(markdown).matchAll(/`([^`\n]+)`/g)].map(([, code = '']) => code);
}

/** The links of a page, except to the web: a path relative to the page ('' for itself), and a heading's anchor. */
export function links(markdown: string): { path: string; anchor: string }[] {
  return [...withoutBlocks(markdown).matchAll(/\]\(([^)#\s]*)(?:#([^)\s]*))?\)/g)]
    .map(([, path = '', anchor = '']) => ({ path, anchor }))
    .filter(({ path }) => !/^[a-z]+:/.test(path));
}

/** The anchors of a page's headings, as GitHub makes them. */
export function anchors(markdown: string): string[] {
  return [...withoutBlocks(markdown).matchAll(/^#+ (.+)$/gm)].map(([, title = '']) =>
    title
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .trim()
      .replaceAll(' ', '-'),
  );
}
