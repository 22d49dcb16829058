// Types of `htm.js`: the module of htm with preact and its hooks in one file, as the server serves it.
export { html, render } from 'htm/preact';
export type { ComponentChildren } from 'preact';
export { useCallback, useEffect, useRef, useState } from 'preact/hooks';
