import test from 'ava';
import { stagesItself, startedByRun } from '../helpers/agents/git-rules.js';
import { killedInEdit, leaseLost, resumedByAnother, twoAtOnce } from '../helpers/agents/rules.js';
import { cleanTurn, killedInShell, refused } from '../helpers/agents/short-rules.js';

test.serial(cleanTurn, 'kilo');
test.serial(refused, 'kilo');
test.serial(killedInShell, 'kilo');
test.serial(killedInEdit, 'kilo');
test.serial(leaseLost, 'kilo');
test.serial(resumedByAnother, 'kilo');
test.serial(twoAtOnce, 'kilo');
test.serial(stagesItself, 'kilo');
test.serial(startedByRun, 'kilo');
