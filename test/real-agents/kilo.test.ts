import test from 'ava';
import { cleanTurn, refused } from '../helpers/agents/short-rules.js';

test.serial(cleanTurn, 'kilo');
test.serial(refused, 'kilo');
