import test from 'ava';
import { cleanTurn, killedInShell, refused } from '../helpers/agents/short-rules.js';

test.serial(cleanTurn, 'opencode');
test.serial(refused, 'opencode');
test.serial(killedInShell, 'opencode');
