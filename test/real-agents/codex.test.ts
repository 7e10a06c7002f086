import test from 'ava';
import { killedInEdit, leaseLost } from '../helpers/agents/rules.js';

test.serial(killedInEdit, 'codex');
test.serial(leaseLost, 'codex');
