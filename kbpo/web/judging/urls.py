"""Addresses of the annotation pages."""

from __future__ import annotations

from django.urls import path

from kbpo.web.desk import expert
from kbpo.web.judging import lessons, own_pages, views
from kbpo.web.marketplace import task, worker_page

urlpatterns = [
    path("", own_pages.home, name="annotate"),
    path("next/", views.next_question, name="annotate_next"),
    path("history/", own_pages.history, name="annotate_history"),
    path("answers/<int:pk>/", own_pages.own_answer, name="annotate_answer"),
    path("messages/", own_pages.letters, name="annotate_messages"),
    path("feedback/", own_pages.feedback, name="annotate_feedback"),
    path("payee/", own_pages.payee_page, name="annotate_payee"),
    path("receipts/", own_pages.receipts, name="annotate_receipts"),
    path("receipts/<str:number>/", own_pages.receipt, name="annotate_receipt"),
    path("leave/", own_pages.show_leaving, name="annotate_leave"),
    path("gone/", own_pages.show_erased, name="annotate_gone"),
    path("volunteer/", own_pages.join_queue, name="annotate_volunteer"),
    path("terms/", lessons.terms, name="annotate_terms"),
    path("tutorial/<slug:interface>/", lessons.tutorial, name="annotate_tutorial"),
    path(
        "tutorial/<slug:interface>/<int:number>/",
        lessons.tutorial_question,
        name="annotate_tutorial_question",
    ),
    path("try/", lessons.index, name="try"),
    path("try/<int:number>/", lessons.question, name="try_question"),
    path("gold/<slug:slug>/<int:pk>/", expert.make_gold_from_known, name="gold_know"),
    path("gold/<int:pk>/", expert.make_gold_from_answer, name="gold_make"),
    path("preview/<int:pk>/", views.preview, name="annotate_preview"),
    path("keys/", views.keys, name="annotate_keys"),
    path("expert/<slug:slug>/", expert.next_question, name="expert-next"),
    path("expert/<slug:slug>/<int:pk>/", expert.question, name="expert-question"),
    path("expert/<slug:slug>/<int:pk>/draft/", expert.draft, name="expert-draft"),
    path("expert/<slug:slug>/<int:pk>/document/", expert.document, name="expert-document"),
    path("task/<str:signed>/", task.task, name="task"),
    path("learn/<str:signed>/", task.learn, name="task_learn"),
    path("say/<str:signed>/", worker_page.say, name="task_say"),
    path("task/<str:signed>/draft/", task.draft, name="task_draft"),
    path("task/<str:signed>/document/<int:pk>/", task.document, name="task_document"),
    path("task/<str:signed>/payment/", task.thanks, name="task_thanks"),
    path("task/<str:signed>/notify/", task.notify, name="task_notify"),
    path("<str:token>/", views.question, name="annotate_question"),
    path("<str:token>/draft/", views.draft, name="annotate_draft"),
    path("<str:token>/stop/", views.stop, name="annotate_stop"),
    path("<str:token>/return/", views.give_back, name="annotate_return"),
    path("<str:token>/document/", views.document, name="annotate_document"),
]
