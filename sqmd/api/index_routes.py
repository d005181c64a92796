"""Bringing the index up to date, and how far it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from sqmd.api.gate import Gate, reply
from sqmd.api.metrics import Metrics
from sqmd.api.openapi import PREFIX, described
from sqmd.api.shapes import IndexStatus, JobShape, JobsReply, Nothing, TriggerReply, TriggerRequest
from sqmd.jobs import Job
from sqmd.service import Service
from sqmd.times import written


def router(service: Service, gate: Gate, metrics: Metrics) -> APIRouter:
    """/index and what is below."""
    routes = APIRouter(prefix=PREFIX)

    @routes.post(
        "/index/trigger",
        **described("Index in the background", TriggerReply, status=202, body=TriggerRequest, body_needed=False),
    )
    async def trigger(request: Request) -> Response:
        return await gate.post(request, started, TriggerRequest)

    def started(asked: TriggerRequest) -> Response:
        job = service.trigger([Path(path) for path in asked.paths] or None, force=asked.force)
        metrics.count_job()
        return reply({"job_id": job.job_id, "status": "queued"}, 202)

    @routes.get("/index/status", **described("What is in the index", IndexStatus))
    async def status(request: Request) -> Response:
        return await gate.get(request, counted, Nothing)

    def counted(_: Nothing) -> Response:
        found = service.status()
        return reply(
            IndexStatus(
                fileCount=found.files,
                chunkCount=found.chunks,
                vectorCount=found.vectors,
                watcherRunning=found.watching,
                dbPath=found.db_path,
            )
        )

    @routes.get("/index/jobs", **described("The jobs of this server, the latest first", JobsReply))
    async def jobs(request: Request) -> Response:
        return await gate.get(request, lambda _: reply({"jobs": [_job(each) for each in service.jobs.all()]}), Nothing)

    @routes.get("/index/jobs/{job_id}", **described("How far a job is", JobShape, path=("job_id", 32)))
    async def job(request: Request) -> Response:
        job_id = request.path_params["job_id"]
        return await gate.get(request, lambda _: reply(_job(service.jobs.get(job_id))), Nothing)

    return routes


def _job(job: Job) -> dict[str, Any]:
    summary = job.summary
    phase, done, total = job.progress
    return {
        "job_id": job.job_id,
        "status": job.status,
        "indexed": summary.indexed if summary else 0,
        "skipped": summary.skipped if summary else 0,
        "errors": len(summary.failed) if summary else 0,
        "started_at": None if job.started_at is None else written(job.started_at),
        "completed_at": None if job.completed_at is None else written(job.completed_at),
        "progress": {"phase": phase, "done": done, "total": total},
        "message": job.failure,
    }
