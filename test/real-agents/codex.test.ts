import test from 'ava';
import { killedInEdit, leaseLost, resumedByAnother, twoAtOnce } from '../helpers/agents/rules.js';
import { stagesItself, startedByRun } from '../helpers/agents/git-rules.js';

test.serial(killedInEdit, 'codex');
test.serial(leaseLost, 'codex');
test.serial(resumedByAnother, 'codex');
test.serial(twoAtOnce, 'codex');
test.serial(stagesItself, 'codex');
test.serial(startedByRun, 'codex');
