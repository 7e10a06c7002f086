import test from 'ava';
import { killedInEdit, leaseLost, resumedByAnother, twoAtOnce } from '../helpers/agents/rules.js';
import { cleanTurn, killedInShell, refused } from '../helpers/agents/short-rules.js';
import { stagesItself, startedByRun } from '../helpers/agents/git-rules.js';

test.serial(cleanTurn, 'opencode');
test.serial(refused, 'opencode');
test.serial(killedInShell, 'opencode');
test.serial(killedInEdit, 'opencode');
test.serial(leaseLost, 'opencode');
test.serial(resumedByAnother, 'opencode');
test.serial(twoAtOnce, 'opencode');
test.serial(stagesItself, 'opencode');
test.serial(startedByRun, 'opencode');
