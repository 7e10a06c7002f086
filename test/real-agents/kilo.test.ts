import test from 'ava';
import { refused } from '../helpers/agents/short-rules.js';

test.serial(refused, 'kilo');
