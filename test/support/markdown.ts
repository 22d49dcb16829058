/** A block of code on a page: the word behind its fence ('' for an indented one), and its text. */
export type CodeBlock = { language: string; code: string };

/** The blocks of code of a page, fenced and indented, in order. */
export function codeBlocks(markdown: string): CodeBlock[] {
  const blocks: CodeBlock[] = [];
  let open: { language: string; lines: string[]; fence: boolean } | null = null;
  let before = '';
  const close = (): void => {
    if (open !== null) blocks.push({ language: open.language, code: `${open.lines.join('\n').trimEnd()}\n` });
    open = null;
  };
  for (const line of markdown.split('\n')) {
    const fence = /^ *```(\w*)/.exec(line);
    const here: typeof open = open;
    if (fence && here?.fence) close();
    else if (fence) {
      close();
      open = { language: fence[1] ?? '', lines: [], fence: true };
    } else if (here?.fence) here.lines.push(line);
    else if (here !== null && (line.startsWith('    ') || line === '')) here.lines.push(line.slice(4));
    else {
      close();
      if (line.startsWith('    ') && before === '')
        open = { language: '', lines: [line.slice(4)], fence: false };
    }
    before = line;
  }
  close();
  return blocks;
}

/** A page without its blocks of code. */
export function withoutBlocks(markdown: string): string {
  return markdown
    .replaceAll(/^ *(`{3,})[\s\S]*?^ *\1$/gm, '')
    .replaceAll(/(?:^|\n\n)(?: {4}.*\n?)+/g, '\n\n');
}

/** The code within the sentences of a page. */
export function codeSpans(markdown: string): string[] {
  return [...withoutBlocks(markdown).matchAll(/`([^`\n]+)`/g)].map(([, code = '']) => code);
}

/** Where a page links to, without what is on the web: a path relative to the page ('' for itself), and a heading's anchor. */
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
