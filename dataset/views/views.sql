{{- /* The views of all dialects. Fields and functions are those of Dialect and data in views.go. */ -}}
-- Views over the dataset {{.Dataset}}, as it was when 'sgtrace sql' was run. Run it again after
-- each 'sgtrace extract': what all captures say together is decided anew then.
-- docs/SQL.md has questions to ask. Times and lengths are integers in ns; times are on the
-- one clock of 'sgtrace report'.
{{range .Macros}}
{{.}};
{{end}}
-- Requests, as 'sgtrace requests --format csv' has them, and more columns.
{{view "requests"}}
select {{columns "requests"}} from {{solved "requests"}};

-- What each server did for a request.
{{view "parts"}}
select {{columns "parts"}} from {{solved "parts"}};

-- Stages of requests. Reports leave out those that are not counted: their times are impossible,
-- or they began anew after a retraction.
{{view "stages"}}
select {{columns "stages"}} from {{solved "stages"}};

{{view "clocks"}}
select {{columns "clocks"}} from {{solved "clocks"}};

-- Arrivals of ranks at collectives that several ranks recorded. late is how long after the first.
{{view "collectives"}}
select {{columns "arrivals"}} from {{solved "arrivals"}};

-- Which rank the rows of captures are of, and how its clock relates to the one clock.
{{view "places"}}
select p.capture as capture, p.process as process, p.thread as thread, p.pid as pid, p.rank as rank, p.rank_order as rank_order,
  p.host as host, c.t0 as t0, c.ahead as ahead, c.drift_ppb as drift_ppb
from {{solved "places"}} p join clocks c on c.clock = p.clock;

-- Rows that do not count, because another profiler recorded them, too.
{{view "repeated"}}
select {{columns "repeated"}} from {{solved "repeated"}};

-- Batches of servers, and iterations of training loops.
{{view "steps"}}
select p.rank as rank, p.host as host, {{onOneClock "s.start"}} as start, s.dur as dur, s.name as name, s.kind as kind, s.batch as batch,
  s.on_gpu as on_gpu, s.capture as capture
from {{captured "steps-0"}} s join places p on p.capture = s.capture and p.process = s.process and p.thread = s.thread and p.pid = -1
where (s.capture, s.start, s.dur, s.name) not in (select capture, start, dur, name from repeated where kind = 'range');
{{range .Slices}}
-- {{.Doc}}
{{view .View}}
select p.rank as rank, p.host as host, {{onOneClock "s.start"}} as start, {{greatest "s.dur" "0"}} as dur, s.name as name, s.kind as kind,
  {{.More}}s.correlation as correlation, s.capture as capture
from {{captured .File}} s join places p on p.capture = s.capture and p.process = s.process and p.thread = s.thread
  and p.pid = case when s.process < 0 then s.pid else -1 end
where (s.capture, s.kind, s.pid, s.start, s.dur, s.name, coalesce(s.correlation, 0)) not in
  (select capture, kind, pid, start, dur, name, correlation from repeated);
{{end}}
{{- range .Summaries}}
-- The table of '{{.Report}}'.
{{view .View}}
with lengths as (
  select {{.Keys}}, stage_order, rank_order, dur, case when request >= 0 then
    {{greatest "0" (printf "%s - %s" (least "start + dur" "request_start + request_dur") (greatest "start" "request_start" (printf "coalesce(max(start + dur) over (partition by %s, request order by start rows between unbounded preceding and 1 preceding), 0)" .Keys)))}} end as covers
  from stages where counted
), sums as (
  select {{.Keys}}, min(stage_order) as by_stage, min(rank_order) as by_rank, count(*) as n, sum({{wide "dur"}}) as total,
    count(*) * sum({{wide "dur"}} * dur) - sum({{wide "dur"}}) * sum({{wide "dur"}}) as spread, min(dur) as lowest,
    {{range $p := .Percentiles}}{{quantile $p "dur"}} as p{{$p}}, {{end}}max(dur) as highest, sum(covers) as covered
  from lengths group by {{.Keys}}
)
select {{.Keys}}, n, {{long "total"}} as total_ns, {{long (div (printf "(total + %s)" (div "n" "2")) "n")}} as mean_ns,
  case when n > 1 then {{long (printf "round(sqrt(%s / n / (n - 1)))" (real "spread"))}} end as stddev_ns, lowest as min_ns,
  {{range $p := .Percentiles}}p{{$p}} as p{{$p}}_ns, {{end}}highest as max_ns,
  round({{real "covered"}} / nullif({{real "(select sum(dur) from requests)"}}, 0), 6) as share
from sums order by by_stage{{.Order}};
{{end}}
-- The table of 'sgtrace requests --format csv'.
{{view "request_list"}}
select {{.RequestColumns}} from requests order by request;

-- The table of 'sgtrace report --kernels --format csv'.
{{view "kernel_summary"}}
with sums as (
  select name, kind, count(*) as n, sum({{wide "dur"}}) as total, count(*) * sum({{wide "dur"}} * dur) - sum({{wide "dur"}}) * sum({{wide "dur"}}) as spread,
    {{median "dur"}} as middle, min(dur) as lowest, max(dur) as highest, count(distinct rank) as ranks,
    {{quantile 90 "dur"}} as p90, {{quantile 95 "dur"}} as p95, {{quantile 99 "dur"}} as p99
  from kernels group by name, kind
)
select round({{real "total"}} / {{real "(select sum(total) from sums)"}}, 6) as time, {{long "total"}} as total_ns, n as instances,
  {{real (div "(20 * total + n)" "(2 * n)")}} / 10 as avg_ns, middle as med_ns, lowest as min_ns, highest as max_ns,
  case when n > 1 then round(10 * sqrt({{real "spread"}} / n / (n - 1))) / 10 else 0 end as stddev_ns,
  p90 as p90_ns, p95 as p95_ns, p99 as p99_ns, ranks, name as kernel
from sums order by total desc, name;
