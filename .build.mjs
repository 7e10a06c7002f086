/**
 * The second half of the build: the programs that people, agents and turns start, each bundled from what tsc made.
 *
 * A start loads some two hundred modules, which costs more than all it does; bundled it is a handful. Packages that are
 * loaded on demand or only to install stay outside. The library export is left as tsc made it.
 */
import { createHash } from 'node:crypto';
import { chmodSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build as bundle } from 'esbuild';

const ROOT = import.meta.dirname;

const OPTIONS = {
  absWorkingDir: ROOT,
  outdir: 'dist/program',
  bundle: true,
  platform: 'node',
  target: 'node20.19',
  sourcemap: process.argv.includes('--sourcemap'),
  define: { DURABLE_BUILD: JSON.stringify(build()) },
  logLevel: 'warning',
};

const { metafile } = await bundle({
  ...OPTIONS,
  entryPoints: [
    'dist/cli/main.js',
    'dist/cli/drill/agent-entry.js',
    'dist/cli/drill/successor-entry.js',
    'dist/cli/drill/agents/model-entry.js',
    'dist/lib/lease/keeper-entry.js',
    { in: 'dist/hooks/direct.js', out: 'direct' },
  ],
  outbase: 'dist',
  splitting: true,
  format: 'esm',
  external: ['fs-extra', 'isomorphic-git', 'jsonc-parser'],
  metafile: true,
});

// What runs twice a tool call of an agent starts as one CommonJS file: node's module loader alone takes longer than all it does. The
// rest it loads from the others.
await bundle({
  ...OPTIONS,
  entryPoints: [{ in: 'dist/hooks/hook-entry.js', out: 'hooks/hook-entry' }],
  format: 'cjs',
  plugins: [
    {
      name: 'direct',
      setup: ({ onResolve }) => {
        onResolve({ filter: /\/direct\.js$/ }, () => ({ path: '../direct.js', external: true }));
      },
    },
  ],
});
writeFileSync(join(ROOT, 'dist/program/hooks/package.json'), '{ "type": "commonjs" }\n');
chmodSync(join(ROOT, 'dist/program/cli/main.js'), 0o755);
writeFileSync(join(ROOT, 'dist/program/LICENSES.txt'), licences(Object.keys(metafile.inputs)));

/** Names all the code that goes into the programs: a keeper and a hook of two builds do not work together (lib/agents/wire.ts). */
function build() {
  const hash = createHash('sha256').update(readFileSync(join(ROOT, 'package-lock.json')));
  for (const folder of ['dist/cli', 'dist/hooks', 'dist/lib'])
    for (const name of readdirSync(join(ROOT, folder), { recursive: true }).sort())
      if (name.endsWith('.js'))
        hash.update(`${folder}/${name}\0`).update(readFileSync(join(ROOT, folder, name)));
  return hash.digest('hex').slice(0, 32);
}

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
