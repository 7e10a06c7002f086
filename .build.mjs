/**
 * The second half of the build: the programs that people, agents and turns start, each bundled from what tsc made.
 *
 * A start loads some two hundred modules, which costs more than all it does; bundled it is a handful. Packages that are
 * loaded on demand or only to install stay outside. The library export is left as tsc made it.
 */
import { chmodSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';

const ROOT = import.meta.dirname;

const { metafile } = await build({
  absWorkingDir: ROOT,
  entryPoints: [
    'dist/cli/main.js',
    'dist/cli/drill/agent-entry.js',
    'dist/cli/drill/successor-entry.js',
    'dist/cli/drill/agents/model-entry.js',
    'dist/hooks/hook-entry.js',
    'dist/lib/lease/keeper-entry.js',
  ],
  outbase: 'dist',
  outdir: 'dist/program',
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node20.19',
  external: ['fs-extra', 'isomorphic-git', 'jsonc-parser'],
  sourcemap: process.argv.includes('--sourcemap'),
  metafile: true,
  logLevel: 'warning',
});
chmodSync(join(ROOT, 'dist/program/cli/main.js'), 0o755);
writeFileSync(join(ROOT, 'dist/program/LICENSES.txt'), licences(Object.keys(metafile.inputs)));

/** What the packages in the bundles ask to be passed on with them. */
function licences(inputs) {
  const packages = new Set(inputs.flatMap((path) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path) ?? []));
  return [...packages].sort().map(licence).join('\n');
}

function licence(folder) {
  const { name, version, license } = JSON.parse(readFileSync(join(ROOT, folder, 'package.json'), 'utf8'));
  const file = readdirSync(join(ROOT, folder)).find((entry) => /^licen[cs]e/i.test(entry));
  const text = file === undefined ? '' : readFileSync(join(ROOT, folder, file), 'utf8');
  return `${name} ${version} (${license})\n\n${text}\n`;
}
