import test from 'ava';
import { killedAtQuestion } from '../helpers/agents/question-rules.js';
import { killedInEdit, leaseLost, resumedByAnother, twoAtOnce } from '../helpers/agents/rules.js';

test.serial(killedInEdit, 'claude-code');
test.serial(leaseLost, 'claude-code');
test.serial(resumedByAnother, 'claude-code');
test.serial(twoAtOnce, 'claude-code');
test.serial(killedAtQuestion, 'claude-code');
