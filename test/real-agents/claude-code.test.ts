import test from 'ava';
import { killedAtQuestion } from '../helpers/agents/question-rules.js';
import { killedInEdit, leaseLost, resumedByAnother, twoAtOnce } from '../helpers/agents/rules.js';
import { stagesItself, startedByRun } from '../helpers/agents/git-rules.js';

test.serial(killedInEdit, 'claude-code');
test.serial(leaseLost, 'claude-code');
test.serial(resumedByAnother, 'claude-code');
test.serial(twoAtOnce, 'claude-code');
test.serial(killedAtQuestion, 'claude-code');
test.serial(stagesItself, 'claude-code');
test.serial(startedByRun, 'claude-code');
