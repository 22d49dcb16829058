/**
 * The version of what this program stores. Every entry of the log carries that of its writer, and Redis that of all:
 * what has none was written before there were versions, and counts as 0. It grows with every change that a program
 * before it could not read.
 */
export const SCHEMA_VERSION = 1;
