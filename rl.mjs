import { openWorld, preset, methodByName, initTrainees, trainStep, trainingProblems, deploy } from 'agon';
const [,, method, lo, hi, steps, lr, ppp, cap, backend='wasm', seed='0']=process.argv;
const w=await openWorld({backend,generationBatchSize:96});
const base=preset('quick').run;
const config={...base,seed:+seed,minDifficulty:+lo,maxDifficulty:+hi,maxSteps:+steps,problemsPerStep:+ppp,grpo:{...base.grpo,learningRate:+lr,maxCompletionLength:+cap}};
const m=methodByName(method); const tr=initTrainees(w.base,m.training,config);
const ps=trainingProblems(w,config);
const val=w.task.problems({split:'validation',count:300,seed:5,minDifficulty:+lo,maxDifficulty:+hi});
const s={temperature:.6,topP:.95,maxCompletionLength:+cap};
const ad=Object.fromEntries(Object.entries(tr).map(([k,t])=>[k,t.adapter]));
const ev=async(tag)=>{ for(const d of m.deployments){const a=await deploy(w,ad,d,val,s,1);const c=x=>(100*x.filter(a=>a.correct).length/x.length).toFixed(1);const L=x=>(x.reduce((s,a)=>s+a.rollout.completionIds.length,0)/x.length).toFixed(0);
 console.log('  EVAL',tag,d.join('>'),c(a),'len',L(a),a[0].rival?`draft ${c(a.map(x=>x.rival))} len ${L(a.map(x=>x.rival))} keep ${c(a.filter(x=>x.rival.correct))} conv ${c(a.filter(x=>!x.rival.correct))}`:'');}};
await ev(0);
for(let t=0;t<+steps;t++){const x=await trainStep(w,m.training,config,tr,ps.slice(t*ppp,(t+1)*ppp),t);
 if(t%5===4||t<2) console.log(t,Object.entries(x).filter(([k])=>/accuracy|mean_length|zero_std|keep|convert|entropy|grad_norm|_time/.test(k)).map(([k,v])=>k.replace('completions/','')+' '+v.toFixed(3)).join(' '));
 if(t%20===19) await ev(t+1);}
await w.pool.close();
