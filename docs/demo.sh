cxi service create --uid 1000 --vni 900 --limit txqs=16:64,tgqs=8:64,eqs=16:64,acs=4:16
cxi service list
cxi service usage 2
cxi service create --uid 2000 --vni 901 --limit txqs=1020:1020
cxi explain create --uid 2000 --vni 901 --limit txqs=1020:1020
cxi service destroy 2
