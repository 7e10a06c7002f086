import test from 'ava';
import { killedInEdit, leaseLost, resumedByAnother } from '../helpers/agents/rules.js';

test.serial(killedInEdit, 'codex');
test.serial(leaseLost, 'codex');
test.serial(resumedByAnother, 'codex');
