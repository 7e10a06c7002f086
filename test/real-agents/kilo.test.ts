import test from 'ava';
import { cleanTurn, refused } from '../helpers/agents/short-rules.js';
import { stagesItself, startedByRun } from '../helpers/agents/git-rules.js';

test.serial(cleanTurn, 'kilo');
test.serial(refused, 'kilo');
test.serial(stagesItself, 'kilo');
test.serial(startedByRun, 'kilo');
