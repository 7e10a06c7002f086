import test from 'ava';
import { drilled } from '../../helpers/agents/drill-rules.js';
import { cleanTurn, killedInShell, refused } from '../../helpers/agents/short-rules.js';

test.serial(cleanTurn, 'claude-code');
test.serial(refused, 'claude-code');
test.serial(killedInShell, 'claude-code');
test.serial(drilled, 'claude-code');
