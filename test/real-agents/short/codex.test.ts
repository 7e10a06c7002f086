import test from 'ava';
import { drilled } from '../../helpers/agents/drill-rules.js';
import { cleanTurn, killedInShell, refused } from '../../helpers/agents/short-rules.js';

test.serial(cleanTurn, 'codex');
test.serial(refused, 'codex');
test.serial(killedInShell, 'codex');
test.serial(drilled, 'codex');
