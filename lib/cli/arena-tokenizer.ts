/** Writes the arena's tokenizer files into data/arena-base. Run: `node dist/lib/cli/arena-tokenizer.js` */
import { join } from 'node:path';
import { ROOT } from '../files.js';
import { writeArenaTokenizer } from '../tasks/countdown/tokenizer-files.js';

writeArenaTokenizer(join(ROOT, 'data/arena-base'));
